"""Parses fitted chats with the types of the providers' Python clients.

Usage: check.py FOLDER. A file is called FORMAT.BUDGET.json.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import get_args, get_type_hints

import botocore.session
import botocore.validate
from anthropic.types import MessageParam
from cohere.types import ChatMessageV2
from google.genai.types import Content, Tool
from ollama import Image, Message
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter, ValidationError


def converse(request):
    model = botocore.session.Session().get_service_model("bedrock-runtime")
    shape = model.operation_model("Converse").input_shape
    report = botocore.validate.ParamValidator().validate(request, shape)
    if report.has_errors():
        raise ValueError(report.generate_report())


def consume(value):
    """Reads a validated value to its end: pydantic validates iterables when they are read."""
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        for inner in value:
            consume(inner)


def listed(key, of):
    adapter = TypeAdapter(list[of])
    return lambda request: consume(adapter.validate_python(request[key]))


def responses(request):
    for item in request["input"]:
        # Only the types with the same `type`: a union takes the most lenient one.
        kind = item.get("type", "message")
        same = [of for of in get_args(ResponseInputItemParam) if kind in names(of)]
        errors = []
        for of in same:
            try:
                consume(TypeAdapter(of).validate_python(item))
                break
            except ValidationError as error:
                errors.append(error)
        else:
            raise ValueError(errors or f"unknown item {kind}")


def names(of):
    """Returns the values of the field `type` of a typed dictionary."""
    return get_args(get_type_hints(of).get("type"))


def gemini(request):
    listed("contents", Content)(request)
    listed("tools", Tool)(request)
    Content.model_validate(request["systemInstruction"])


def ollama(request):
    for message in request["messages"]:
        # The client encodes an image as a string when it sends it.
        images = [Image(value=image) for image in message.get("images", [])]
        Message.model_validate({**message, "images": images or None})


CHECKS = {
    "anthropic": listed("messages", MessageParam),
    "bedrock": converse,
    "cohere": listed("messages", ChatMessageV2),
    "gemini": gemini,
    "ollama": ollama,
    "openai": listed("messages", ChatCompletionMessageParam),
    "openai-responses": responses,
}


def main():
    counts = {}
    for path in sorted(Path(sys.argv[1]).glob("*.json")):
        name = path.name.split(".")[0]
        if name not in CHECKS:
            continue
        try:
            CHECKS[name](json.loads(path.read_text()))
        except Exception as error:
            sys.exit(f"{path}: {error}")
        counts[name] = counts.get(name, 0) + 1
    missing = CHECKS.keys() - counts.keys()
    if missing:
        sys.exit(f"no fitted chats: {', '.join(sorted(missing))}")
    print(", ".join(f"{name} {count}" for name, count in counts.items()))


main()
