"""Long transcripts in object storage: any service that supports S3."""

import uuid
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from kite_memory.tools.store import StoreUnavailable

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_SECONDS: Final = 10
_HINT: Final = "try again in a moment; see `[team]` in the configuration if it stays so"


class ObjectMissing(StoreUnavailable):
    """A row refers to an object that is missing or differs from what was stored."""


class Objects(Protocol):
    """Interface of object storage. Names are generated and never reused. Raises `StoreUnavailable`."""

    def put(self, tenant: str, content: bytes) -> str:
        """Store the content and return its name. It can be read once this returns."""
        ...

    def get(self, name: str) -> bytes: ...

    def remove(self, name: str) -> None:
        """Delete an object; a missing one is ignored."""
        ...

    def names(self, tenant: str, *, before: datetime) -> Iterator[str]:
        """Yield the names of objects stored before a time."""
        ...


class S3Objects:
    """Object storage over S3. boto3 finds the credentials: in the environment, its own files, or the machine's role."""

    def __init__(self, *, bucket: str, endpoint: str = "", prefix: str = "kite-memory", region: str = "") -> None:
        self._bucket = bucket
        self._prefix = prefix.strip("/")
        self._client: S3Client = boto3.client(
            "s3",
            endpoint_url=endpoint or None,
            region_name=region or None,
            config=Config(
                connect_timeout=_SECONDS / 3,
                read_timeout=_SECONDS,
                retries={"mode": "standard", "total_max_attempts": 2},
                request_checksum_calculation="when_required",  # services other than Amazon's do not support the newer checksums
                response_checksum_validation="when_required",
            ),
        )

    def put(self, tenant: str, content: bytes) -> str:
        name = f"{self._folder(tenant)}{uuid.uuid4().hex}"
        try:
            self._client.put_object(Bucket=self._bucket, Key=name, Body=content, ContentType="application/octet-stream")
        except (BotoCoreError, ClientError) as error:
            raise _unavailable(error) from error
        return name

    def get(self, name: str) -> bytes:
        try:
            return self._client.get_object(Bucket=self._bucket, Key=name)["Body"].read()
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in ("NoSuchKey", "404"):
                raise ObjectMissing("the transcript is no longer in object storage", hint="tell who runs it") from error
            raise _unavailable(error) from error
        except BotoCoreError as error:
            raise _unavailable(error) from error

    def remove(self, name: str) -> None:
        try:
            self._client.delete_object(Bucket=self._bucket, Key=name)
        except (BotoCoreError, ClientError) as error:
            raise _unavailable(error) from error

    def names(self, tenant: str, *, before: datetime) -> Iterator[str]:
        try:
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._folder(tenant)):
                for found in page.get("Contents", ()):
                    if found["LastModified"] < before:
                        yield found["Key"]
        except (BotoCoreError, ClientError) as error:
            raise _unavailable(error) from error

    def _folder(self, tenant: str) -> str:
        """Return a tenant's folder in hexadecimal, so that no tenant's name is a prefix of another's, or a path."""
        return f"{self._prefix}/{tenant.encode().hex()}/"


def _unavailable(error: BotoCoreError | ClientError) -> StoreUnavailable:
    if isinstance(error, ClientError):
        code = error.response.get("Error", {}).get("Code", "unknown")
        return StoreUnavailable(f"object storage refused: {code}", hint=_HINT)
    return StoreUnavailable("object storage does not answer", hint=_HINT)
