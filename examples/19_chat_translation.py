"""Chat translation: a translator, and a stream that joins original and translation.

The translator acks a message and pushes its translation in one transaction, to the partition of the same
name: each message is translated once. Translator and stream consumer run concurrently. Prints each chat.
"""

import asyncio

from queenspark import AsyncLeasedMessage, AsyncQueen, AsyncWindow

SPANISH = {"Hello!": "¡Hola!", "How are you?": "¿Cómo estás?", "Good night": "Buenas noches"}


async def main() -> None:
    async with AsyncQueen() as queen:
        stream = queen.stream("whole-chats", "chat")
        originals, translations = queen.queue("originals"), queen.queue("translations")
        await stream.delete()
        for queue in (originals, translations):
            await queue.delete()
            await queue.create()
        # A chat ends after two seconds of inactivity.
        stream = stream.sources(["originals", "translations"]).partitioned()
        await stream.session(gap="2s").grace_period(0).define()

        async def translate(message: AsyncLeasedMessage) -> None:
            translated = {"of": message.data["text"], "text": SPANISH[message.data["text"]]}
            work = queen.transaction().ack(message)
            await work.queue("translations").partition(message.partition).push(translated).commit()

        async def show(window: AsyncWindow) -> None:
            sides = window.group_by("queue")
            spanish = {message.data["of"]: message.data["text"] for message in sides["translations"]}
            lines = [f"{text} ({spanish[text]})" for text in sides["originals"].values("data.text")]
            print(f"{window.key}: {' '.join(lines)}")

        async with asyncio.TaskGroup() as services:
            services.create_task(originals.auto_ack(False).each().limit(3).consume(translate))
            services.create_task(queen.consumer("whole-chats", "show").process(show, limit=2))
            await originals.partition("chat-1").push([{"text": "Hello!"}, {"text": "How are you?"}])
            await originals.partition("chat-2").push({"text": "Good night"})


asyncio.run(main())
