"""The crew: how its agents are, which departments may go on, who was asked to stop, and what stands
still.
"""
