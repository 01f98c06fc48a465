"""seatrial: carries a model from a git push to production, and takes it back when production says no.

The rooms, from the bottom up; imports point downwards only:

    errors names spec bundle release verdict ledger objects ports   the nouns, one file each
    route                                                            every change of who serves
    data/ evaluation/ canary/ triton/                                the rules: data in, result out
    adapters/                                                        the only code that touches outside systems
    app/                                                             the command, the runner, the sandbox (in no image)
"""
