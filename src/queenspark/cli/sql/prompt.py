"""The interactive prompt."""

from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.exits import Failure
from queenspark.cli.output import out, say
from queenspark.cli.sql.completion import SqlCompleter
from queenspark.cli.sql.highlighting import STYLE, SqlLexer
from queenspark.cli.sql.history import history
from queenspark.cli.sql.names import Names
from queenspark.cli.sql.runner import Runner, StatementFailed
from queenspark.cli.sql.text import is_complete
from queenspark.client.brokers import shown

_PROMPT = "queenspark> "
_LEAVE = ("exit", "quit")
_HELP = """\
End statements with ;. They may span lines. Tab completes, Ctrl-R searches the history.
Ctrl-C clears the input, or stops a running SELECT. Ctrl-D or exit leaves.

Declare the columns of a queue, push rows, and query them:
  CREATE STREAM clicks (page STRING, ms BIGINT) WITH (queue = 'clicks');
  INSERT INTO clicks VALUES ('home', 12), ('cart', 30);
  SELECT page, COUNT(*) AS n FROM clicks GROUP BY page EMIT CHANGES;

Create a job, which keeps running and writes its rows to the queue busy:
  CREATE STREAM busy AS SELECT page, COUNT(*) AS n FROM clicks
    GROUP BY page WINDOW TUMBLING(1m);
  PAUSE JOB busy;  RESUME JOB busy;  RESTART JOB busy;  DROP STREAM busy;

Inspect:
  SHOW STREAMS;  SHOW JOBS;  SHOW QUEUES;  SHOW FUNCTIONS;
  DESCRIBE busy;  DESCRIBE EXTENDED busy;  EXPLAIN SELECT page FROM clicks;"""


def converse(broker: BrokerApi, runner: Runner, **terminal: Any) -> None:
    """Read and run statements until Ctrl-D; `terminal` replaces the user's terminal in tests."""
    names = Names(broker)
    session: PromptSession[str] = PromptSession(
        [("class:prompt", _PROMPT)],
        multiline=True,
        prompt_continuation=lambda width, *_: [("class:continuation", "-> ".rjust(width))],
        history=history(),
        completer=SqlCompleter(names),
        complete_in_thread=True,
        lexer=SqlLexer(),
        style=STYLE,
        include_default_pygments_style=False,
        key_bindings=_bindings(),
        **terminal,
    )
    say(f"Connected to {shown(broker.url)}. End statements with ; or type help.")
    while True:
        try:
            text = session.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        word = text.strip().rstrip(";").strip().lower()
        if word in _LEAVE:
            return
        if word == "help":
            out().print(_HELP, soft_wrap=True)
        elif word:
            _run(runner, text)
            names.forget()


def _run(runner: Runner, text: str) -> None:
    try:
        runner.run(text)
    except KeyboardInterrupt:
        say("Cancelled; the statement may still have taken effect.")
    except StatementFailed:
        pass
    except Failure as failure:
        say(str(failure))


def _bindings() -> KeyBindings:
    """Enter ends a statement that has its semicolon; else it begins a new line."""
    bindings = KeyBindings()

    @bindings.add("enter", filter=has_focus(DEFAULT_BUFFER))
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif is_complete(buffer.text) or buffer.text.strip().lower() in ("", "help", *_LEAVE):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    return bindings
