/*
 * Camera tensors of every world, and single pictures for people.
 *
 * Implemented by libdoorstep_render.so, which is loaded on first use and calls the simulators through the table of
 * doorstep_api.h. The rules of doorstep.h apply here too; ds_last_error() of doorstep.h gives the errors.
 */
#ifndef DOORSTEP_RENDER_H
#define DOORSTEP_RENDER_H

#include "doorstep/rooms.h"

/* Must be the first call after loading. core: from ds_get_api(DS_ABI_VERSION, ...), of the same version. */
DS_API ds_status ds_render_open(const struct ds_api* core, const char* version);

/* One field of one struct of this header, as compiled into the library; used to check the generated bindings. */
DS_API ds_status ds_render_layout(const ds_layout_entry** entries, uint64_t* count);

/* ---- Cameras ----------------------------------------------------------------------------------------------- */

/* All renderers. X(NAME, name, number, simulators, materials, sentence). simulators: ANY, or CPU if it draws no
   simulators on CUDA; materials: HLSL if it takes a material, else NONE. */
#define DS_RENDERER_TABLE(X)                                                                                       \
    X(RAYCAST, raycast, 1, ANY, NONE,                                                                              \
      "Doorstep's own ray caster: the same bits whatever the number of worlds and threads.")                       \
    X(EMBREE, embree, 2, CPU, NONE, "Intel Embree, which is in the wheel.")                                        \
    X(VULKAN, vulkan, 3, ANY, HLSL, "A rasteriser on any Vulkan device.")

/* Renderers. AUTO is RAYCAST. */
typedef enum ds_renderer {
    DS_RENDERER_AUTO = 0,
#define DS_RENDERER_ENUM(NAME, name, number, simulators, materials, sentence) DS_RENDERER_##NAME = number,
    DS_RENDERER_TABLE(DS_RENDERER_ENUM)
#undef DS_RENDERER_ENUM
    DS_RENDERER_COUNT
} ds_renderer;

/* All camera tensors. X(name, dtype, shape, access, sentence). One view per agent, H rows of W pixels from the top
   left. All are C-contiguous, aligned to 256 bytes, and written after every step, reset, refresh and restore. */
#define DS_CAMERA_TENSOR_TABLE(X)                                                                                  \
    X(rgb, UINT8, "N,A,H,W,4", READ, "Red, green, blue, 255.")                                                     \
    X(depth, FLOAT32, "N,A,H,W,1", READ, "Distance along the camera's forward axis, metres; 0 for the sky.")       \
    X(segmentation, UINT8, "N,A,H,W,2", READ,                                                                      \
      "Entity kind (0 sky, 6 floor) and the slot in its table: bodies, statics or buttons; 0 for sky and floor.")  \
    X(normals, FLOAT32, "N,A,H,W,3", READ, "Unit normals of the surfaces in world axes; 0 for the sky.")

typedef enum ds_camera_tensor_id {
#define DS_CAMERA_TENSOR_ENUM(name, dtype, shape, access, sentence) DS_CAMERA_TENSOR_##name,
    DS_CAMERA_TENSOR_TABLE(DS_CAMERA_TENSOR_ENUM)
#undef DS_CAMERA_TENSOR_ENUM
    DS_CAMERA_TENSOR_COUNT
} ds_camera_tensor_id;

enum {
    DS_MAX_RESOLUTION = 4096, /* of either side of a view */
    DS_MAX_SAMPLES = 8,       /* of a picture, along either side of a pixel */
};

typedef uint64_t ds_cameras; /* the cameras of one simulator */

typedef struct ds_cameras_config {
    uint32_t struct_size;
    int32_t renderer;          /* ds_renderer */
    int32_t width;             /* pixels, 1 .. DS_MAX_RESOLUTION */
    int32_t height;
    float vertical_fov;        /* degrees, at least 0.1, less than 180 */
    uint32_t outputs;          /* bit 1 << ds_camera_tensor_id per output tensor; at least one */
    float position[3];         /* of the camera in the agent's frame (x right, y forward, z up from the floor), metres */
    float rotation[4];         /* unit quaternion (w, x, y, z) relative to the agent; (1, 0, 0, 0) looks along forward */
    const char* material;      /* HLSL source of a material, UTF-8; null: the default material */
    const char* material_name; /* its name in messages; null: "material" */
} ds_cameras_config;

/* Gives a simulator cameras and draws at once; one set per simulator. INVALID_ARGUMENT, OUT_OF_MEMORY, RENDERER (the
   renderer cannot be used here), SHADER (the material does not compile). */
DS_API ds_status ds_cameras_create(ds_simulator simulator, const ds_cameras_config* config, ds_cameras* cameras);

/* Describes a tensor; memory: a new reference to its memory, to be released with ds_memory_release. INVALID_ARGUMENT
   if the tensor is not among `outputs`. */
DS_API ds_status ds_cameras_get_tensor(ds_cameras cameras, int32_t tensor, ds_tensor_info* info, ds_memory* memory);

/* The renderer (never AUTO), and the name of the processor or device it draws on. */
typedef struct ds_cameras_info {
    uint32_t struct_size;
    int32_t renderer;
    char device[256];
} ds_cameras_info;
DS_API ds_status ds_cameras_get_info(ds_cameras cameras, ds_cameras_info* info);

/* Releases the handle; the cameras end with the simulator. */
DS_API ds_status ds_cameras_close(ds_cameras cameras);

/* Number of sets of cameras alive in this process. */
DS_API ds_status ds_cameras_count(int64_t* count);

/* ---- Pictures ---------------------------------------------------------------------------------------------- */

/* Shapes in a picture. BOX and AGENT are solid; the others are painted on the floor, in the order given. */
typedef enum ds_picture_shape {
    DS_PICTURE_NONE = 0,      /* not drawn */
    DS_PICTURE_BOX = 1,       /* with bevelled edges */
    DS_PICTURE_AGENT = 2,     /* a figure with eyes, +y forward */
    DS_PICTURE_RECTANGLE = 3,
    DS_PICTURE_GRID = 4,      /* lines along both axes, at whole multiples of their period from the world's origin */
    DS_PICTURE_STRIPES = 5,   /* diagonal */
    DS_PICTURE_DISC = 6,      /* an ellipse; with a line width only its border */
    DS_PICTURE_GLOW = 7,      /* a disc that fades to its border */
    DS_PICTURE_SHAPE_COUNT
} ds_picture_shape;

typedef struct ds_picture_object {
    int32_t shape;     /* ds_picture_shape */
    float centre[3];   /* of the box around it, metres; on the floor z is ignored */
    float rotation[4]; /* unit quaternion (w, x, y, z); on the floor about z */
    float size[3];     /* full extents, metres */
    float colour[3];   /* as displayed (sRGB), 0 .. 1 */
    float opacity;     /* of shapes on the floor, 0 .. 1 */
    float shine;       /* share of the colour that is there without light, 0 .. 1 */
    float bevel;       /* of a box's edges, metres */
    float line_width;  /* of GRID, STRIPES and DISC, metres */
    float line_period; /* of GRID and STRIPES: from line to line, metres */
} ds_picture_object;

/* Colours as displayed (sRGB), 0 .. 1. The light on a surface is the sum of the three kinds of light; 1 shows its
   colour unchanged. */
typedef struct ds_picture_config {
    uint32_t struct_size;
    int32_t width;              /* pixels, 1 .. DS_MAX_RESOLUTION */
    int32_t height;
    int32_t samples;            /* rays per pixel are samples * samples, 1 .. DS_MAX_SAMPLES */
    int32_t shadows;            /* 0 or 1: shadows, and less light in corners */
    int32_t orthographic;       /* 0 or 1 */
    float vertical_fov;         /* degrees; orthographic: full height of the view, metres */
    float position[3];          /* of the camera, metres */
    float rotation[4];          /* unit quaternion; (1, 0, 0, 0) looks along +y with z up */
    float ground[3];            /* colour of the floor */
    float background[3];        /* colour of the sky and of the far floor */
    float eye[3];               /* colours of the agents' eyes */
    float pupil[3];
    float to_sun[3];            /* unit vector */
    float sun;                  /* light from there */
    float sun_radius;           /* of the sun's disc, as a tangent: width of the borders of shadows per distance */
    float sky;                  /* light on a surface that faces up */
    float bounce;               /* light on a surface that faces down */
    float corner_reach;         /* metres within which objects take each other's light from the sky */
    int32_t num_threads;        /* 1 .. DS_MAX_THREADS; 0: as many as the process may use */
    int32_t first_row;          /* the rows that are drawn: 0 .. height - 1, counted from the top */
    int32_t num_rows;           /* 1 .. height - first_row; 0: all from first_row on */
} ds_picture_config;

/* Draws one picture, or some of its rows, on the CPU: rgb is [height, width, 3] uint8, of which only those rows are
   written. Rows drawn by several calls have the bits of one call. */
DS_API ds_status ds_picture_draw(const ds_picture_object* objects, uint64_t count, const ds_picture_config* config,
                                 uint8_t* rgb, uint64_t bytes);

/* ---- Renderers --------------------------------------------------------------------------------------------- */

/* Whether a renderer can be used, and its description: "Embree 4.3.2", "llvmpipe (Vulkan 1.3.230)". RENDERER if it
   cannot; the message gives the reason. */
typedef struct ds_renderer_info {
    uint32_t struct_size;
    int32_t padding;
    char description[256];
} ds_renderer_info;
DS_API ds_status ds_renderer_get_info(int32_t renderer, ds_renderer_info* info);

#endif
