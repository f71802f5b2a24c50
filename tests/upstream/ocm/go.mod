// OCM's work-agent suite as its module has it: nothing here is ours but the choice of the version.
module maestropy/ocm

go 1.25.0

require open-cluster-management.io/ocm v1.2.1
