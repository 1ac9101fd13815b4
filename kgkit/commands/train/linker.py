"""`kgkit train linker`: a linker learns from mentions of which it is known what they mean."""

from kgkit.commands.options import KBOption, NameOption, SeedOption, VectorsOption, chosen_kb
from kgkit.commands.output import check_files
from kgkit.commands.train.linker_options import (
    LinkerCorrectionsOption,
    LinkerDataOption,
    LinkerEncoderOption,
    LinkerEpochsOption,
    LinkerKeepOption,
    LinkerTaggerOption,
    SenseGoldOption,
)
from kgkit.commands.train.linker_runs import record_linker
from kgkit.commands.train.methods import TrainingOptions, with_training_options


@with_training_options
def linker(
    name: NameOption,
    data: LinkerDataOption,
    gold: SenseGoldOption = None,
    corrections: LinkerCorrectionsOption = None,
    kb: KBOption = None,
    encoder: LinkerEncoderOption = None,
    vectors: VectorsOption = None,
    mentions: LinkerTaggerOption = "",
    epochs: LinkerEpochsOption = None,
    seed: SeedOption = 0,
    keep: LinkerKeepOption = False,
    *,
    options: TrainingOptions,
) -> None:
    """Train a linker for a knowledge base, for kgkit link and kgkit evaluate to use by its name.

    For a knowledge base of names it begins as links-minilm, unless --encoder or --vectors are named.

    Documents have all of their links: what else equals a name teaches that it is none.

    A linker that links what was held out no better than linking without training is not published.
    """
    from kgkit.kb import open_kb
    from kgkit.training.linkers.settings import EPOCHS, LinkerTraining

    training = LinkerTraining(
        data=tuple(data), gold=tuple(gold or ()), corrections=corrections, encoder=encoder, vectors=vectors,
        mentions=mentions, epochs=EPOCHS if epochs is None else epochs, seed=seed, keep=keep,
    )  # fmt: skip
    check_files(
        training.files,
        instead="name the files in it; of texts `kgkit link FOLDER -o links.jsonl` writes a file that can be "
        "corrected and given",
    )
    with open_kb(chosen_kb(kb)) as opened:
        record_linker(opened, name, training, options)
