"""Acts of agents and what our hook says to each before a tool runs: forbidden ones in every spelling,
innocent ones of every role. The lists and the verdicts wanted stand in `fixtures/hooks`.
"""
