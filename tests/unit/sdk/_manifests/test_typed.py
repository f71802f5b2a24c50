"""Feedback values as classes of the user."""

import dataclasses
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from maestropy import Work, errors
from maestropy.adapter import ObservedState
from maestropy.adapter.errors import NotYet, UnreadableFeedback
from tests.unit.adapter.samples import reported, work

STATUS = '{"controlPlaneEndpoint": {"host": "api.example.net", "port": 6443}, "version": "4.14", "more": [1]}'


class EndpointStruct(msgspec.Struct):
    host: str
    port: int


class StatusStruct(msgspec.Struct, rename="camel"):
    control_plane_endpoint: EndpointStruct
    version: str = ""


@dataclasses.dataclass(frozen=True)
class EndpointData:
    host: str
    port: int


@dataclasses.dataclass(frozen=True)
class StatusData:
    controlPlaneEndpoint: EndpointData
    version: str = ""


class EndpointModel(pydantic.BaseModel):
    host: str
    port: int


class StatusModel(pydantic.BaseModel):
    endpoint: EndpointModel = pydantic.Field(alias="controlPlaneEndpoint")
    version: str = ""


class EndpointDict(TypedDict):
    host: str
    port: int


class StatusDict(TypedDict):
    controlPlaneEndpoint: EndpointDict
    version: str


def with_status(feedback: str | None) -> Work:
    return reported(work(), feedback=feedback, Applied="True")


@pytest.mark.parametrize(
    ("into", "expected"),
    [
        (StatusStruct, StatusStruct(EndpointStruct("api.example.net", 6443), "4.14")),
        (StatusData, StatusData(EndpointData("api.example.net", 6443), "4.14")),
        (
            StatusModel,
            StatusModel(controlPlaneEndpoint=EndpointModel(host="api.example.net", port=6443), version="4.14"),
        ),
    ],
    ids=["msgspec", "dataclass", "pydantic"],
)
def test_feedback_is_converted_into_a_class(into: type[Any], expected: object) -> None:
    assert with_status(STATUS).feedback("status", into) == expected
    assert ObservedState([with_status(STATUS)]).feedback("status", "ConfigMap", into=into) == expected


def test_typed_dict_is_checked() -> None:
    status = with_status(STATUS).feedback("status", StatusDict)
    assert status is not None
    assert status["controlPlaneEndpoint"]["port"] == 6443


def test_missing_feedback_is_the_default() -> None:
    assert with_status(None).feedback("status", StatusData) is None
    default = StatusData(EndpointData("", 0))
    assert with_status(None).feedback("status", StatusData, default=default) == default
    with pytest.raises(NotYet):
        ObservedState([with_status(None)]).feedback("status", into=StatusData)


@pytest.mark.parametrize("into", [StatusStruct, StatusData, StatusModel], ids=["msgspec", "dataclass", "pydantic"])
@pytest.mark.parametrize(
    "feedback", ['{"controlPlaneEndpoint": {"host": "a", "port": "many"}}', "{}", '"text"', "{ cut"]
)
def test_value_that_does_not_match_is_an_error_with_the_reason(into: type[Any], feedback: str) -> None:
    with pytest.raises(errors.Invalid, match=f"feedback 'status' is not a {into.__name__}: "):
        with_status(feedback).feedback("status", into)
    with pytest.raises(UnreadableFeedback, match=into.__name__):
        ObservedState([with_status(feedback)]).feedback("status", into=into)
