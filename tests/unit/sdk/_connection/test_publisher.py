"""A certificate file that cannot be used is an error of the settings, at the first write and at a dry run."""

from pathlib import Path

import pytest

from maestropy import AsyncMaestro, Work, errors

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot read {}: No such file"), (b"garbage", "{} holds no PEM certificate")]
)
async def test_unusable_ca_file_is_named_and_is_not_its_own_cause(
    content: bytes | None, message: str, tmp_path: Path
) -> None:
    ca_file = tmp_path / "ca.crt"
    if content is not None:
        ca_file.write_bytes(content)
    # Nothing listens there: a request that is sent fails otherwise.
    client = AsyncMaestro(
        environ={}, api_url="http://127.0.0.1:1", grpc_url="127.0.0.1:1", source="test", ca_file=ca_file
    )
    bundle = {"consumer_name": "c", "manifests": [CONFIG_MAP]}
    async with client:
        works, work = client.works("c"), Work("a").add(CONFIG_MAP)
        for write in (
            works.create(work),
            works.apply(work, dry_run=True),
            works.delete("a"),
            client.resource_bundles.apply(bundle),
            client.resource_bundles.apply(bundle, dry_run=True),
        ):
            with pytest.raises(errors.ConfigError) as raised:
                await write
            assert str(raised.value).startswith(message.format(ca_file))
            assert raised.value.__cause__ is not raised.value
