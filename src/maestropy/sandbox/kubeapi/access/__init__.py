"""Authentication, RBAC and access reviews."""
