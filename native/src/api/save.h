// The header of a save, and the checks of bytes passed as a save.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <bit>
#include <memory>
#include <type_traits>

#include "api/call.h"
#include "exec/saved_state.h"
#include "exec/simulator.h"

namespace doorstep {

// Little-endian, followed by `count` worlds of `saved_world_bytes` bytes.
struct SaveHeader {
    char magic[8];
    uint32_t format_version;
    char library_version[20];  // zero-filled
    int32_t num_agents, num_bodies, num_statics, num_buttons, num_doors;
    int32_t episode_length;
    int32_t auto_reset;
    int32_t padding;             // zero
    uint64_t world_bytes;        // size of a block
    uint64_t saved_world_bytes;  // size of a block and its rows of tensors
    uint64_t count;
    uint64_t checksum;  // of the rest of the save
};
static_assert(sizeof(SaveHeader) == 96 && offsetof(SaveHeader, num_agents) == 32 &&
              offsetof(SaveHeader, world_bytes) == 64 && offsetof(SaveHeader, checksum) == 88);
static_assert(std::is_trivially_copyable_v<SaveHeader> && std::has_unique_object_representations_v<SaveHeader>);
static_assert(std::endian::native == std::endian::little);

// The header of a save of `count` worlds, without checksum.
SaveHeader make_save_header(const Simulator& simulator, uint64_t count);

// Checksum of the header, without its checksum field, and the worlds after it.
uint64_t save_checksum(SaveHeader header, const char* worlds);

// A complete save that fits a simulator. The worlds are a copy: another thread may write the caller's bytes between the
// check and the restore.
struct CheckedSave {
    SaveHeader header;
    std::unique_ptr<char[]> worlds;
};

// Fills in *save. DS_STATUS_INVALID_STATE, with the error set, unless the bytes are an undamaged save that fits the
// simulator.
ds_status read_save(const Simulator& simulator, const void* data, uint64_t bytes, CheckedSave* save);

inline constinit HandleRegistry<SavedState> saved_states{HandleKind::SAVED_STATE};

// Finds a state from which worlds of this kind and rule can go on. INVALID_STATE, for the argument "state", if they cannot.
ds_status find_state(ds_saved_state handle, WorldKind kind, int64_t episode_length, Ref<SavedState>* state);

}  // namespace doorstep
