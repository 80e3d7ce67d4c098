// What passes of a model cost here: the one cost model, which the passes themselves keep right.
//
// It begins with what is known beforehand: a measurement, what was learnt in earlier runs, or a guess
// (guessed_costs.h). Every pass that is computed then corrects it: how fast the machine is just now, for
// all numbers of rows; and what this number takes beside others, which says something of those near it.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "cost/calibration.h"
#include "model/layer_set.h"

namespace forerun {

// A pass that was computed, with all of the model's blocks.
struct SeenPass {
  int n_rows;
  int n_requests;  // that have these rows
  int n_context;   // tokens of all their texts together
  double seconds;
};

class PassCosts {
 public:
  // What it begins with.
  enum class Known {
    kMeasured,
    // Numbers of rows that were never seen are taken to be a little cheaper than they look, so that they
    // are tried.
    kGuessed,
    // The same of kernels that compute one row after the other, as ggml's do: rows of a draft take no
    // less than a prompt's.
    kGuessedRowByRow,
    kGiven,  // passes change nothing: for tests
  };
  // `n_computed`: rows that a pass of some number of rows really has, where passes are filled up.
  explicit PassCosts(Calibration first, Known known = Known::kMeasured,
                     std::function<int(int n_rows)> n_computed = std::identity());

  // Of a pass of `n_rows` rows, all requests together, without context.
  double rows(int n_rows) const { return learnt_.curve.rows(n_computed_(n_rows)); }
  // More for one request with `n_rows` rows of these and `n_context` tokens.
  double attention(int n_rows, int n_context) const {
    return learnt_.curve.attention(n_rows, n_context);
  }
  // The same for several requests that have these rows and tokens together.
  double attention_of_all(int n_rows, int n_requests, int n_context) const {
    const double n_each = std::max(1.0, static_cast<double>(n_rows) / n_requests);
    return learnt_.curve.attention(n_each, n_context);
  }
  // Of a pass of `n_rows` rows of one request behind `n_context` tokens, or of several such requests.
  double pass(int n_rows, int n_context, int n_requests = 1) const {
    return rows(n_requests * n_rows) + n_requests * attention(n_rows, n_context);
  }

  // Of reading the last `n_tokens` of a text with `n_context` before something is said about it, which
  // takes a pass of one row anyway.
  double reading(int n_tokens, int n_context) const {
    return reading_factor_ * expected_reading(n_tokens, n_context);
  }

  // Of one row, without context.
  const BlockCosts& blocks() const { return learnt_.blocks; }
  // Of one row in one layer's attention behind `n_context` tokens.
  double attention_block(int n_layers, int n_context) const {
    return blocks().attention + attention(1, n_context) / n_layers;
  }
  // Of a pass with these layers, one row for each of so many requests behind `n_context` tokens.
  double pass_with(const LayerSet& layers, int n_context, int n_requests = 1) const;

  void observe(const SeenPass& seen);
  // A pass that read so many tokens of prompts, and nothing else. What is not measured is guessed by it.
  void observe_prompt(int n_rows, double seconds);
  // So many tokens were read at once, for reading(). What prepares passes with many rows is a part of
  // it, and none of what passes with few of them cost.
  void observe_reading(int n_tokens, int n_context, double seconds);
  // A pass with these layers alone, one row behind `n_context` tokens.
  void observe_layers(const LayerSet& layers, int n_context, double seconds);

  int64_t n_seen() const { return n_seen_; }
  // What is known now.
  const Calibration& learnt() const { return learnt_; }

 private:
  // How passes compare with what was known of this number of rows, on a machine that is as fast as now.
  struct Correction {
    double factor = 1;
    double n_seen = 0;  // fading
  };
  double expected_reading(int n_tokens, int n_context) const;
  // Of a pass with a point's rows, whose correction is `factor`, on the machine as fast as it is now.
  double seconds_of(size_t point, double factor) const;
  double smoothed(size_t point) const;
  bool is_guess() const { return known_ == Known::kGuessed || known_ == Known::kGuessedRowByRow; }
  void follow_prompt();
  double least_of_row() const;
  void correct();

  Calibration first_;
  Known known_;
  std::function<int(int)> n_computed_;
  double machine_factor_ = 1;
  std::vector<Correction> corrections_;  // per point of the curve
  double attention_factor_ = 1;
  double layers_factor_ = 1;
  double prompt_row_seconds_ = 0;  // 0: no prompt was seen
  // The prompt whose rows took least, of those that are long enough; no rows: none was seen.
  struct {
    int n_rows = 0;
    double seconds = 0;
  } fastest_prompt_;
  bool seen_largest_ = false;  // passes with as many rows as the curve has
  double reading_factor_ = 1;
  int n_readings_ = 0;
  int64_t n_seen_ = 0;
  Calibration learnt_;
};

}  // namespace forerun
