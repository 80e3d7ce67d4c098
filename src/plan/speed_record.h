// How many times as fast as plain decoding text came of late: what time is worth in the long run.
#pragma once

namespace forerun {

class SpeedRecord {
 public:
  // A step gave `n_tokens` and took as long as `n_plain` steps of plain decoding.
  void add(double n_tokens, double n_plain) {
    n_tokens_ = kKept * n_tokens_ + n_tokens;
    n_plain_ = kKept * n_plain_ + n_plain;
  }
  // `usual` is what is known beforehand.
  double speedup(double usual) const { return (n_tokens_ + kFirst * usual) / (n_plain_ + kFirst); }

 private:
  static constexpr double kKept = 0.96;  // with every step
  static constexpr double kFirst = 6;    // steps that what is known beforehand is worth

  double n_tokens_ = 0;
  double n_plain_ = 0;
};

}  // namespace forerun
