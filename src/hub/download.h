// Brings a file of a hub onto this machine, whole or not at all.
//
// Beside the file lie, until it is there, FILE.part with what came so far and FILE.lock, which says what
// that is a part of and keeps a second process from writing to it. A download that ended early goes on
// where it was.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "hub/hub.h"

namespace forerun {

// How far it is, in bytes.
using DownloadProgress = std::function<void(const HubFile& file, int64_t n_done)>;

// The file is at `target`, with the right checksum, when this returns; what is there already is checked.
// Throws Error, and what the hub's on_wait throws: what came so far is kept then, unless it is wrong.
void download(Hub& hub, const HubRepository& repository, const HubFile& file,
              const std::filesystem::path& target, const DownloadProgress& progress);

}  // namespace forerun
