"""What brokers do: send twice, late, in the wrong order, not at all; and agents that die in between."""

from conformance import memory_server
from conformance import objects_wanted as want
from conformance.fleet import Fleet, letters


async def case_redelivered_wishes_change_nothing(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    uid = fleet.publish("w", cm)
    await fleet.is_applied("w")
    before = await fleet.exists(cm)
    told = len(fleet.server.reports[uid])
    for _ in range(3):
        fleet.server.send(memory_server.spec_event(fleet.server.wishes[uid]))
    await fleet.settles()
    assert (await fleet.exists(cm))["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert len(fleet.server.reports[uid]) == told


async def case_old_wish_after_a_new_one(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    uid = fleet.publish("w", cm)
    old = fleet.server.wishes[uid]
    await fleet.is_applied("w")
    fleet.publish("w", want.config_map(fleet.namespace, "cm", data={"k": "new"}))
    fleet.server.send(memory_server.spec_event(old))
    await fleet.is_applied("w")
    await fleet.settles()
    assert (await fleet.exists(cm))["data"] == {"k": "new"}


async def case_92_wish_after_its_deletion(fleet: Fleet) -> None:
    held = want.config_map(fleet.namespace, "cm", finalizers=["suite.test/hold"])
    uid = fleet.publish("w", held)
    wish = fleet.server.wishes[uid]
    await fleet.is_applied("w")
    fleet.delete("w")
    await fleet.report("w", lambda found: letters(found, "Deleting").startswith("T"), what="Deleting")
    # Late updates of any version bring nothing back to life.
    for generation in (1, 2, 99):
        fleet.server.send(memory_server.spec_event(wish.with_metadata(generation=generation)))
    await fleet.settles()
    assert letters(fleet.told("w") or wish, "Deleting").startswith("T")
    await fleet.cluster.edit(held, {"metadata": {"finalizers": None}})
    await fleet.is_deleted("w")
    await fleet.is_gone(held)


async def case_deletion_before_its_wish(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    await fleet.stop()
    uid = fleet.publish("w", cm)
    wish = fleet.server.wishes[uid]
    fleet.server.wishes.clear()
    await fleet.start()
    fleet.server.wishes[uid] = wish
    fleet.delete("w")
    await fleet.is_deleted("w")
    assert await fleet.cluster.get(cm) is None


async def case_deleted_twice(fleet: Fleet) -> None:
    uid = fleet.publish("w", want.config_map(fleet.namespace, "cm"))
    await fleet.is_applied("w")
    fleet.delete("w")
    leaving = fleet.server.wishes[uid]
    await fleet.is_deleted("w")
    fleet.server.send(memory_server.deletion_event(leaving))
    await fleet.settles()
    # The server may have missed the first answer: every question gets one.
    assert len([each for each in fleet.server.reports[uid] if each.status.is_deleted]) == 2


async def case_97_asked_for_anew_before_the_end_is_acknowledged(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    uid = fleet.publish("w", cm)
    await fleet.is_applied("w")
    fleet.delete("w")
    report = fleet.server.take

    async def slow(received: object) -> None:
        await report(received)  # type: ignore[arg-type]  # an event
        if uid not in fleet.server.wishes and not fleet.server.reports[uid][-1].deletion_timestamp == "":
            # The server knows of the end and has a new wish, but its acknowledgement is lost.
            fleet.server.take = report  # type: ignore[method-assign]  # back to normal
            fleet.publish("w", cm)
            await fleet.settles(has_server=False)
            fleet.server.hang_up()

    fleet.server.take = slow  # type: ignore[method-assign,assignment]  # one slow acknowledgement
    await fleet.sees("w", applied="T:T", available="T:T")
    await fleet.settles()
    assert await fleet.cluster.get(cm)


async def case_95_status_resync_by_hash(fleet: Fleet) -> None:
    first, second = (fleet.publish(name, want.config_map(fleet.namespace, name)) for name in ("one", "two"))
    one, two = await fleet.is_applied("one"), await fleet.is_applied("two")
    await fleet.settles()
    counts = {uid: len(fleet.server.reports[uid]) for uid in (first, second)}

    async def told_again(uid: str) -> bool:
        return len(fleet.server.reports[uid]) == counts[uid] + 1

    fleet.server.ask_for_statuses({first: one.status.hash(), second: "another"})
    await fleet.until(lambda: told_again(second), what="the status whose hash differs")
    assert len(fleet.server.reports[first]) == counts[first]
    counts[second] += 1
    fleet.server.ask_for_statuses({})
    await fleet.until(lambda: told_again(first), what="all statuses")
    await fleet.until(lambda: told_again(second), what="all statuses")
    assert fleet.server.reports[second][-1].status.hash() == two.status.hash()


async def case_95_every_connection_begins_with_a_resync(fleet: Fleet) -> None:
    uid = fleet.publish("w", want.config_map(fleet.namespace, "cm"))
    await fleet.is_applied("w")
    fleet.publish("w", want.config_map(fleet.namespace, "cm", data={"k": "new"}))
    await fleet.is_applied("w")
    fleet.server.hang_up()

    async def greeted() -> bool:
        return len(fleet.server.greetings) == 2

    await fleet.until(greeted, what="a second greeting")
    assert fleet.server.greetings == [{}, {uid: 2}]


async def case_6_7_works_the_server_lost_are_deleted(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    uid = fleet.publish("w", cm)
    await fleet.is_applied("w")
    # Somebody removed it from the database while the connection was down.
    fleet.server.is_away = True
    fleet.server.hang_up()
    del fleet.server.wishes[uid]
    fleet.server.is_away = False
    await fleet.is_gone(cm)
    await fleet.report("w", lambda found: found.status.is_deleted, what="Deleted")


async def case_lost_wishes_come_with_the_next_connection(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    lost = fleet.wish("w", cm).with_metadata(generation=1)
    fleet.server.wishes[lost.uid] = lost
    await fleet.settles()
    assert await fleet.cluster.get(cm) is None
    fleet.server.hang_up()
    await fleet.is_applied("w")


async def case_refused_report_does_not_stop_the_others(fleet: Fleet) -> None:
    fleet.server.refuses = 1
    fleet.publish("one", want.config_map(fleet.namespace, "one"))
    await fleet.exists(want.config_map(fleet.namespace, "one"))
    fleet.publish("two", want.config_map(fleet.namespace, "two"))
    await fleet.is_applied("two")


async def case_report_that_is_not_taken_waits_alone(fleet: Fleet) -> None:
    fleet.server.too_busy_for[fleet.id_of("one")] = 3
    fleet.publish("one", want.config_map(fleet.namespace, "one"))
    fleet.publish("two", want.config_map(fleet.namespace, "two"))
    await fleet.is_applied("two")
    await fleet.is_applied("one")
    assert fleet.server.too_busy_for == {fleet.id_of("one"): 0}
    assert len(fleet.server.greetings) == 1


async def case_outage_costs_only_time(fleet: Fleet) -> None:
    fleet.server.is_away = True
    fleet.server.hang_up()
    await fleet.settles(has_server=False)
    names = [f"w{number}" for number in range(5)]
    for name in names:
        fleet.publish(name, want.config_map(fleet.namespace, name))
    fleet.server.is_away = False
    for name in names:
        await fleet.is_applied(name)
    fleet.server.is_away = True
    fleet.server.hang_up()
    for name in names:
        fleet.delete(name)
    await fleet.settles(has_server=False)
    fleet.server.is_away = False
    for name in names:
        await fleet.is_deleted(name)


async def case_restart_touches_nothing(fleet: Fleet) -> None:
    name = fleet.namespace
    web, cm, account = want.deployment(name, "web"), want.config_map(name, "cm"), want.service_account(name, "sa")
    applied = want.deployment(name, "applied")
    configs = [
        want.config("deployments", "applied", group="apps", updateStrategy=want.strategy("ServerSideApply", force=True))
    ]
    fleet.publish("w", web, cm, account, applied, manifestConfigs=configs)
    await fleet.is_applied("w")
    await fleet.settles()
    before = [await fleet.exists(each) for each in (web, cm, account, applied)]
    record = await fleet.record("w") or {}
    await fleet.restart()
    fleet.server.reports.clear()
    await fleet.is_applied("w")
    await fleet.settles()
    after = [await fleet.exists(each) for each in (web, cm, account, applied)]
    for old, new in zip(before, after, strict=True):
        for field in ("uid", "generation", "ownerReferences"):
            assert new["metadata"].get(field) == old["metadata"].get(field)
        assert new["spec" if "spec" in new else "kind"] == old["spec" if "spec" in old else "kind"]
    # Not even marked for eviction while the work was on its way.
    assert await fleet.record("w") == record


async def case_killed_anywhere_in_applying(fleet: Fleet) -> None:
    cms = [want.config_map(fleet.namespace, f"cm{number}") for number in range(6)]
    fleet.publish("w", *cms)
    for number in range(4):
        await fleet.exists(cms[number])
        await fleet.restart()
    await fleet.is_applied("w")
    await fleet.records_exactly("w", *(f"configmaps/cm{number}" for number in range(6)))


async def case_killed_anywhere_in_deleting(fleet: Fleet) -> None:
    held = want.config_map(fleet.namespace, "held", finalizers=["suite.test/hold"])
    cms = [want.config_map(fleet.namespace, f"cm{number}") for number in range(5)]
    fleet.publish("w", *cms, held)
    await fleet.is_applied("w")
    fleet.delete("w")
    for cm in cms:
        await fleet.restart()
        await fleet.is_gone(cm)
    await fleet.report("w", lambda found: "suite.test/hold" in str(found.status.body), what="the finalizer that holds")
    await fleet.cluster.edit(held, {"metadata": {"finalizers": None}})
    await fleet.restart()
    await fleet.is_deleted("w")
    await fleet.is_gone(held)
    assert await fleet.record("w") is None


async def case_burst_of_updates_ends_with_the_last(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    for number in range(30):
        fleet.publish("w", want.config_map(fleet.namespace, "cm", data={"k": str(number)}))
    await fleet.is_applied("w")
    assert (await fleet.exists(cm))["data"] == {"k": "29"}


async def case_burst_of_works_that_change_as_soon_as_they_are_told_of(fleet: Fleet) -> None:
    """What a record lists may come later than the report; what was created is ended all the same."""
    names = [f"w{number}" for number in range(12)]
    old = {name: want.config_map(fleet.namespace, f"old-{name}") for name in names}
    new = {name: want.config_map(fleet.namespace, f"new-{name}") for name in names}
    for name in names:
        fleet.publish(name, old[name])
    for name in names[:6]:
        await fleet.is_applied(name)
        fleet.publish(name, new[name])
    for name in names[6:]:
        await fleet.is_applied(name)
        fleet.delete(name)
    for name in names[:6]:
        await fleet.is_applied(name)
        await fleet.records_exactly(name, f"configmaps/new-{name}")
    for name in names[6:]:
        await fleet.is_deleted(name)
    await fleet.is_gone(*old.values())


async def case_burst_of_works_that_change_while_the_agent_is_away(fleet: Fleet) -> None:
    names = [f"w{number}" for number in range(12)]
    old = {name: want.config_map(fleet.namespace, f"old-{name}") for name in names}
    for name in names:
        fleet.publish(name, old[name])
    for name in names:
        await fleet.is_applied(name)
    await fleet.stop()
    for name in names[:6]:
        fleet.publish(name, want.config_map(fleet.namespace, f"new-{name}"))
    for name in names[6:]:
        fleet.delete(name)
    await fleet.start()
    for name in names[:6]:
        await fleet.is_applied(name)
        await fleet.records_exactly(name, f"configmaps/new-{name}")
    for name in names[6:]:
        await fleet.is_deleted(name)
    await fleet.is_gone(*old.values())


async def case_deleted_while_it_is_applied(fleet: Fleet) -> None:
    for number in range(10):
        cms = [want.config_map(fleet.namespace, f"cm{number}-{each}") for each in range(3)]
        fleet.publish("w", *cms)
        if number % 2:
            await fleet.exists(cms[0])
        fleet.delete("w")
        await fleet.is_deleted("w")
        await fleet.is_gone(*cms)
        fleet.server.reports.clear()


async def case_6_9_lines_that_log_queries_look_for(fleet: Fleet) -> None:
    read_only, applied, created = (want.config_map(fleet.namespace, name) for name in ("seen", "applied", "created"))
    await fleet.cluster.create(read_only)
    configs = [
        want.config("configmaps", "seen", updateStrategy=want.strategy("ReadOnly")),
        want.config("configmaps", "applied", updateStrategy=want.strategy("ServerSideApply")),
    ]
    work_id = fleet.publish("w", read_only, applied, created, manifestConfigs=configs)
    await fleet.is_applied("w")
    await fleet.settles()
    lines = fleet.log.splitlines()

    def line(phrase: str, *parts: str) -> str:
        found, *_ = [each for each in lines if f'] "{phrase}"' in each and all(part in each for part in parts)]
        return found

    for phrase in ("Received event", "Sending event"):
        assert f'"resourceid":"{work_id}"' in line(phrase, work_id)
    where = f'resourceNamespace="{fleet.namespace}"'
    line("Noop because its read-only", where, 'resourceName="seen"')
    line("Server side applied", where, 'resourceName="applied"', 'fieldManager="work-agent"')
    line("Created resource because it was missing", where, 'resourceName="created"')
