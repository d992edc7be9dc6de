"""Parses fitted chats with the types of the providers' Python clients.

Usage: check.py FOLDER. A file is called FORMAT.BUDGET.json.
"""

import json
import sys
from pathlib import Path

import botocore.session
import botocore.validate
from anthropic.types import MessageParam
from cohere.types import ChatMessageV2
from google.genai.types import Content, Tool
from ollama import Image, Message
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter


def converse(request):
    model = botocore.session.Session().get_service_model("bedrock-runtime")
    shape = model.operation_model("Converse").input_shape
    report = botocore.validate.ParamValidator().validate(request, shape)
    if report.has_errors():
        raise ValueError(report.generate_report())


def listed(key, of):
    adapter = TypeAdapter(list[of])
    return lambda request: adapter.validate_python(request[key])


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
    "openai-responses": listed("input", ResponseInputItemParam),
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
