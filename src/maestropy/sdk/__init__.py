"""The client of Maestro: works, their status, consumers and bundles, for programs that await and for those that do not.

    from maestropy import Maestro, Work

    with Maestro(source="my-adapter") as maestro:        # MAESTRO_API_URL and MAESTRO_GRPC_URL say where
        works = maestro.works("us-east-mgmt-01")
        works.apply(Work("hello").add(config_map, feedback={"data": ".data"}))
        print(works.wait_for("hello", "Applied", timeout=60).feedback("data"))

`client` has the asynchronous client, `blocking` the same without `await`; both are the same code. What goes wrong is
in `errors`, and nothing else is raised for what a server, a network or a file does.
"""
