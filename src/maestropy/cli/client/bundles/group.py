"""`maestro resourcebundle`: the group of commands, with the examples of each."""

from cyclopts import App

from maestropy.cli.client.bundles import changes, reads
from maestropy.cli.client.bundles import edit as editing
from maestropy.cli.examples import GLOBAL_FLAGS, epilogue

app = App(
    name="resourcebundle",
    help="List, apply, compare, edit, await, watch, resend and delete resource bundles.",
    help_epilogue=f"""\
Examples:

  maestro resourcebundle apply -f work.yaml --wait
  maestro resourcebundle apply -f configmap.yaml --consumer cluster1 --name hello
  cat work.yaml | maestro resourcebundle diff -f -
  maestro resourcebundle list --consumer cluster1 -l app=web -o wide
  maestro resourcebundle describe 55c61e54-a3f6-563d-9fec-b1fe297bdfdb
  maestro resourcebundle describe cluster1/hello
  maestro resourcebundle wait cluster1/hello --for=condition=Available
  maestro resourcebundle watch --consumer cluster1

Short: `maestro rb` for `maestro resourcebundle`, `ls` for `list`.

{GLOBAL_FLAGS}

Exit codes: 0 done (diff: no difference), 1 failed (diff: there are differences), 2 a mistake in the command line,
3 diff failed, 130 interrupted.""",
    help_format="plaintext",
    version_flags=[],
)

app.command(
    reads.list_,
    name="list",
    help_epilogue=epilogue(
        "maestro resourcebundle list -l app=web -o wide",
        "maestro resourcebundle list --consumer cluster1 --source my-adapter --all",
        "maestro resourcebundle list --search \"payload->'metadata'->>'name' like 'web%'\" -o name",
        "maestro resourcebundle list -o jsonpath='{range .items[*]}{.consumer_name}/{.metadata.name}{\"\\n\"}{end}'",
        "maestro resourcebundle list --no-headers -o custom-columns=NAME:.metadata.name,VERSION:.version",
        "maestro resourcebundle list --consumer cluster1 --watch",
    ),
)
app.command(
    reads.get,
    name="get",
    help_epilogue=epilogue(
        "maestro resourcebundle get cluster1/hello -o yaml",
        "maestro resourcebundle get cluster1/hello -o jsonpath='{.status.conditions[?(@.type==\"Applied\")].status}'",
    ),
)
app.command(
    changes.apply,
    name="apply",
    help_epilogue=epilogue(
        "maestro resourcebundle apply -f work.yaml --wait",
        "maestro resourcebundle apply -f configmap.yaml --consumer cluster1 --name hello",
        "maestro resourcebundle apply -f work.yaml --dry-run=server",
        "maestro resourcebundle apply -f configmap.yaml --consumer cluster1 --name hello --dry-run=client -o yaml",
        "cat work.yaml | maestro resourcebundle apply -f -",
    ),
)
app.command(
    changes.diff,
    name="diff",
    help_epilogue=epilogue(
        "maestro resourcebundle diff -f work.yaml",
        "cat work.yaml | maestro resourcebundle diff -f -",
        exit_codes="Exit codes: 0 no difference, 1 there are differences, 2 a mistake in the command line,\n"
        "3 diff failed, 130 interrupted.",
    ),
)
app.command(
    editing.edit,
    name="edit",
    help_epilogue=epilogue(
        "maestro resourcebundle edit cluster1/hello",
        "EDITOR='code --wait' maestro resourcebundle edit cluster1/hello",
    ),
)
app.command(
    changes.delete,
    name="delete",
    help_epilogue=epilogue(
        "maestro resourcebundle delete cluster1/hello --yes --wait",
        "maestro resourcebundle delete cluster1/hello cluster2/hello --yes",
        "maestro resourcebundle delete -f work.yaml --yes --ignore-not-found",
        "maestro resourcebundle delete -l app=web --consumer cluster1 --yes",
        "maestro resourcebundle delete -l app=web --source other --grpc-source-id other --yes",
    ),
)
app.command(
    changes.wait,
    name="wait",
    help_epilogue=epilogue(
        "maestro resourcebundle wait cluster1/hello --for=condition=Applied --timeout 60s",
        "maestro resourcebundle wait -l app=web --for=condition=Available",
        "maestro resourcebundle wait cluster1/hello --for=delete",
        "maestro resourcebundle wait cluster1/hello --for=jsonpath='{.version}'=2",
    ),
)
app.command(
    changes.resend,
    name="resend",
    help_epilogue=epilogue(
        "maestro resourcebundle resend cluster1/hello --dry-run",
        "maestro resourcebundle resend cluster1/hello --reason 'lost at the broker' --yes",
    ),
)
app.command(reads.status, name="status", help_epilogue=epilogue("maestro resourcebundle status cluster1/hello"))
app.command(
    reads.describe,
    name="describe",
    help_epilogue=epilogue(
        "maestro resourcebundle describe cluster1/hello",
        "maestro resourcebundle describe 55c61e54-a3f6-563d-9fec-b1fe297bdfdb",
    ),
)
app.command(
    reads.watch,
    name="watch",
    help_epilogue=epilogue(
        "maestro resourcebundle watch --consumer cluster1",
        "maestro resourcebundle watch -l app=web -o json",
    ),
)
