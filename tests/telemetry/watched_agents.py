"""Agent functions whose runs are exported: importable, for workers."""

from typing import Any

from headrace import Model

SECRET = "secret-prompt"


def look_up(topic: str) -> str:
    return f"about {topic}"


def breaks() -> None:
    raise ValueError("secret-message")


async def child(ctx: Any, topic: str) -> str:
    return await ctx.step("child-step", look_up, topic)


async def researcher(ctx: Any, topic: str) -> str:
    found = await ctx.step("search", look_up, topic)
    asked = await ctx.ask(Model("test", canned_response="secret-answer"), f"{SECRET}: {found}")
    await ctx.command(["true"], name="check")
    await ctx.run(child, topic)
    return asked


async def failing(ctx: Any) -> None:
    await ctx.step("broken", breaks, side_effect=True)
