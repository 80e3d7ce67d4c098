// Puts the rows of a pass together: trees of drafts, and parts of prompts.
//
// Not thread-safe.
#pragma once

#include <span>
#include <vector>

#include "engine/active_request.h"
#include "model/executor.h"

namespace forerun {

class PassRows {
 public:
  // The executor outlives it.
  explicit PassRows(Executor& executor) : executor_(executor) {}

  void clear();
  // The request's last token and its tree. There are cells for them.
  void add_tree(ActiveRequest& request);
  // The next `n` tokens that are to be read of its text. There are cells for them.
  void add_unread(ActiveRequest& request, size_t n);

  const Pass& pass() const { return pass_; }
  size_t size() const { return pass_.rows.size(); }
  // The cells of the request's rows.
  std::span<const NodeId> nodes(const ActiveRequest& request) const {
    return std::span(nodes_).subspan(request.first_row, request.n_rows);
  }

 private:
  Executor& executor_;
  Pass pass_;
  std::vector<NodeId> nodes_;
};

}  // namespace forerun
