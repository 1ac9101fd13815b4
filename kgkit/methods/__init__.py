"""How a head reads the examples of a task, begins, opens and answers.

    contract    what a method is
    answering   what all methods have in common: batches with gold, the loss, predictions
    settings    what all trainings are told; `kbert_settings`, `knowbert_settings` of one method
    kbert       K-BERT
    knowbert    KnowBert; `knowbert_start` what its trainings begin with, `knowbert_reading` its reader

Importing this package, and the settings, loads no torch.
"""
