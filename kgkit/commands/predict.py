"""`kgkit predict`: what a trained model answers to texts, pairs or tokens."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import BatchOption, DeviceOption, OutputOption, flag
from kgkit.commands.output import check_files, in_pipe, on_terminal, write_bytes
from kgkit.commands.text_streams import STDIN, report_terminal
from kgkit.errors import UsageError
from kgkit.files import check_output_path, written

if TYPE_CHECKING:
    from kgkit.evaluation.examples import Prediction
    from kgkit.evaluation.records import LineFormat, ParsedRecord
    from kgkit.evaluation.tasks import Task
    from kgkit.methods.predicting import Answered, Predictor


def predict(
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Model that was trained for a task (`kgkit models list` names them), or its folder.",
        ),
    ],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Records; may be compressed. - is standard input, which is also read if none is named.",
        ),
    ] = None,
    line_format: Annotated[
        Literal["auto", "lines", "tsv", "jsonl"],
        typer.Option(
            "--format",
            help="What a line is: a text (lines), fields with tabs between them (tsv), an object (jsonl); "
            "auto goes by the first line, and knows the task's own formats.",
        ),
    ] = "auto",
    batch: BatchOption = 32,
    device: DeviceOption = "auto",
    bf16: Annotated[
        bool, flag("--bf16", help="Multiply in bfloat16; else in float32, as kgkit evaluate does.")
    ] = False,
    output: OutputOption = None,
) -> None:
    """Answer records with a model that was trained for a task.

    Writes JSON lines, one a record, in their order: id, answer, probabilities, and the fields that the task
    does not use. Of tags the text, and the spans of its tokens and of the names: code points, end exclusive.
    """
    from kgkit.home import Home
    from kgkit.models.opening import open_model

    files = files or [STDIN]
    if files.count(STDIN) > 1:
        raise UsageError("standard input can be read once only: name - once")
    check_files(file for file in files if file != STDIN)
    if output == STDIN:
        output = None
    if output is not None:
        check_output_path(output, (file for file in files if file != STDIN))
    messages = Messages(bars=output is not None or not (on_terminal() or in_pipe()))
    with ExitStack() as stack:
        opened: Predictor = open_model(model, "predictor", home=Home.find(), device=device)
        predictor = stack.enter_context(opened)
        if bf16:
            from kgkit.encoder.device import computes_bf16

            computes_bf16(True, next(predictor.method.model.parameters()).device)
        report_terminal(files, messages)
        tell = stack.enter_context(messages.progress(f"predicting with {model}"))
        write = write_bytes if output is None else stack.enter_context(written(output)).write
        count = 0
        for file in files:
            name = str(file) if len(files) > 1 else None

            def show(answered: int, before: int = count) -> None:
                tell(f"{before + answered:,} records", before + answered)

            records = _records(predictor.task, file, line_format)
            for block in predictor.answer_blocks(records, batch=batch, bf16=bf16, progress=show):
                write(b"".join(json_line(answered, name) for answered in block))
                count += len(block)
    if output is not None:
        messages.write(f"answers to {count:,} records: {output}")


def _records(task: "Task", file: Path, line_format: "LineFormat") -> "Iterator[ParsedRecord]":
    """Yield the records of a file, or of standard input; of an empty one none. A pipe is read once only."""
    from kgkit.files import decoded_lines, lines

    if file.is_file():
        if next(lines(file), None) is not None:
            yield from task.read_records(file, line_format)
        return
    numbered = decoded_lines(sys.stdin.buffer, file) if file == STDIN else lines(file)
    first = next(numbered, None)
    if first is not None:
        from itertools import chain

        both = chain([first], numbered)
        yield from task.parse_lines(both, file, unique=False, line_format=line_format)


def json_line(answered: "Answered", file: str | None = None) -> bytes:
    """Return a record and its answer as a line of JSON.

    Args:
        answered: the record and the answer.
        file: name of the file that the record is of, where there are several.

    Raises:
        SourceError: if the record has a field of a name that the answer has too, or one that is no JSON.
    """
    import msgspec

    parsed, prediction = answered
    fields = _answer_fields(parsed, prediction, file)
    if not parsed.unused or parsed.record is None:
        return msgspec.json.encode(fields) + b"\n"
    unused = {name: value for name, value in parsed.unused.items() if value is not None or name not in fields}
    if both := sorted(fields.keys() & unused.keys()):
        raise parsed.record.error(
            f"the record has a field {both[0]!r}, as its answer has: rename it, or leave it out"
        )
    try:
        return msgspec.json.encode({**fields, **unused}) + b"\n"
    except (RecursionError, UnicodeEncodeError) as error:
        raise parsed.record.error(f"the record has a field that is no JSON: {error}") from None


def _answer_fields(parsed: "ParsedRecord", prediction: "Prediction", file: str | None) -> dict[str, Any]:
    """Return what a line has of an answer."""
    answer = prediction.answer
    fields: dict[str, Any] = {} if file is None else {"file": file}
    fields |= {"id": prediction.id, "answer": sorted(answer) if isinstance(answer, frozenset) else answer}
    if prediction.probabilities is not None:
        fields["probabilities"] = prediction.probabilities
    if isinstance(answer, tuple):
        text = parsed.example.texts[0]
        fields |= {
            "text": text,
            "tokens": prediction.tokens,
            "mentions": [
                {"start": start, "end": end, "text": text[start:end], "type": kind}
                for start, end, kind in prediction.names
            ],
        }
    return fields
