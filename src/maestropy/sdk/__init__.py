"""Client of Maestro: works, their status, consumers and resource bundles; asynchronous and blocking.

    from maestropy import Maestro, Work

    with Maestro(source="my-adapter") as maestro:        # connects to MAESTRO_API_URL and MAESTRO_GRPC_URL
        works = maestro.works("us-east-mgmt-01")
        works.apply(Work("hello").add(config_map, feedback={"data": ".data"}))
        print(works.wait_for("hello", "Applied", timeout=60).feedback("data"))

`client` has the asynchronous client, `blocking` the same without `await`; both are the same code. Failures of a server,
a network or a file raise only the errors of `errors`.
"""
