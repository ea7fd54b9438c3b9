"""The scripted policy: solves levels without training, by planning on the state."""

from doorstep.planner.policy import ScriptedPolicy as ScriptedPolicy

__all__ = ["ScriptedPolicy"]
