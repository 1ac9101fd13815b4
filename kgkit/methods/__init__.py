"""How a head reads the examples of a task, begins, opens and answers.

    contract    what a method is
    answering   what all methods have in common: batches with gold, the loss, predictions
    settings    what all trainings are told, and what their manifests say
    x_settings  settings, manifest and kind of a head x: kbert, ebert, kambert, knowbert, kalm
    x           how it reads, begins and opens

Importing this package, and the settings, loads no torch.
"""
