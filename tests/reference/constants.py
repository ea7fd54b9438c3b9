"""The figures of the environment. Metres, seconds, radians."""

ROOMS = 3
WORLD_LENGTH = 40.0
WORLD_WIDTH = 20.0
ROOM_LENGTH = WORLD_LENGTH / ROOMS
DOOR_SLOT = WORLD_WIDTH / 3
DOOR_WIDTH = 0.8 * DOOR_SLOT
BUTTON_SIDE = 1.3
BUTTON_HEIGHT = 0.25
CUBE_SIDE = 3.0
AGENT_SIDE = 2.0
WALL_HEIGHT = 5.0
END_WALL_HEIGHT = 4.375

DOOR_CLEARANCE = 0.125  # below the floor, for the top of an open door
DOOR_DROP = 1.2  # metres per step
STEPS_PER_SECOND = 25

MAX_PROGRESS = 80.0
REWARD_PER_METRE = 0.05
SLACK_REWARD = -0.005
BONUS_FACTOR = 1.25
BONUS_DISTANCE = 2.0
WEIGHTS = {  # the terms of rewards
    "progress": REWARD_PER_METRE, "idle": SLACK_REWARD, "bonus_factor": BONUS_FACTOR,
    "bonus_distance": BONUS_DISTANCE, "room": 0.0, "exit": 0.0, "cube_approach": 0.0, "goal": 0.0,
    "max_y": MAX_PROGRESS,
}  # fmt: skip

LIDAR_RAYS = 30
LIDAR_RANGE = 200.0
EYE_HEIGHT = 0.5
GRAB_RANGE = 2.0
ROOM_SLOTS = 6

NONE, BUTTON, CUBE, WALL, AGENT, DOOR = range(6)
IDLE = (0, 0, 2, 0)
