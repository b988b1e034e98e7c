// Messages of all compressors for the sanitizers (scripts/sanitize): decoding gives what
// compressing gives, bit for bit, and damaged messages are read without harm or refused.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include "compress/bernoulli.h"
#include "compress/block_topk.h"
#include "compress/composition.h"
#include "compress/identity.h"
#include "compress/natural.h"
#include "compress/natural_dithering.h"
#include "compress/permk.h"
#include "compress/power_sgd.h"
#include "compress/randk.h"
#include "compress/random_dithering.h"
#include "compress/randseqk.h"
#include "compress/rank_r.h"
#include "compress/sign.h"
#include "compress/symmetric.h"
#include "compress/terngrad.h"
#include "compress/topk.h"
#include "compress/toplek.h"

using namespace buropt;

int check_compressors();

namespace {

using Compressors = std::vector<std::shared_ptr<const Compressor>>;

class Check {
 public:
  /// How many messages were wrong.
  int run() {
    for (int turn = 0; turn < 40; ++turn) {
      for (const std::uint32_t d : {1u, 2u, 3u, 10u, 64u, 136u, 300u}) {
        for (const auto& compressor : compressors(d)) {
          check<float>(*compressor, d);
          check<double>(*compressor, d);
        }
      }
    }
    return wrong_;
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  template <class Rule>
  static std::shared_ptr<const Selector> selector(const Rule& rule) {
    return std::make_shared<SelectorOf<Rule>>(rule);
  }
  template <class Rule>
  static std::shared_ptr<const Compressor> quantizer(const Rule& rule) {
    return std::make_shared<QuantizerOf<Rule>>(rule);
  }

  /// One of each, with random parameters.
  Compressors compressors(std::uint32_t d) {
    const std::uint32_t k = 1 + below(d), levels = 1 + below(20), n = 1 + below(20);
    const std::vector<std::shared_ptr<const Selector>> selectors{selector(Identity{}),
                                                                 selector(RandK{k, true, false}),
                                                                 selector(RandSeqK{k, false}),
                                                                 selector(RandK{k, false, true}),
                                                                 selector(TopK{k}),
                                                                 selector(TopLEK{k}),
                                                                 selector(BlockTopK{1, n}),
                                                                 selector(PermK{n}),
                                                                 selector(Bernoulli{0.5, true})};
    const Compressors quantizers{quantizer(NaturalCompression{}),
                                 quantizer(RandomDithering{{levels, Norm::two}}),
                                 quantizer(NaturalDithering{{levels, Norm::one}}),
                                 quantizer(TernGrad{}),
                                 quantizer(Sign{}),
                                 quantizer(ScaledSign{})};
    Compressors all(selectors.begin(), selectors.end());
    all.insert(all.end(), quantizers.begin(), quantizers.end());
    all.push_back(std::make_shared<LowRankOf<RankR>>(1 + below(3), below(9)));
    all.push_back(std::make_shared<LowRankOf<PowerSGD>>(1 + below(3), below(9)));
    all.push_back(std::make_shared<SymmetricOf<SymmetricRankR>>(1));
    all.push_back(std::make_shared<SymmetricOf<SymmetricPowerSGD>>(1));
    all.push_back(std::make_shared<Composition>(selectors[below(9)], quantizers[below(6)]));
    all.push_back(std::make_shared<Scaled>(quantizers[below(6)], 0.5));
    return all;
  }

  /// Numbers of all sizes, at times with one that is special.
  template <class T>
  std::vector<T> vector(std::uint32_t d) {
    using Limits = std::numeric_limits<T>;
    constexpr T kSpecial[] = {Limits::quiet_NaN(), Limits::infinity(), Limits::denorm_min(),
                              Limits::max(), T(0)};
    std::normal_distribution<double> normal;
    std::vector<T> x(d);
    for (T& entry : x)
      entry = static_cast<T>(std::ldexp(normal(random_), -static_cast<int>(below(90))));
    if (below(2) == 0) x[below(d)] = kSpecial[below(5)];
    return x;
  }

  template <class T>
  void check(const Compressor& compressor, std::uint32_t d) {
    try {
      compressor.check(d);
    } catch (const Error&) {
      return;
    }
    const std::vector<T> x = vector<T>(d);
    const std::uint32_t n_workers = compressor.n_workers() == 0 ? 9 : compressor.n_workers();
    const Draw draw{{random_(), below(100), 3}, below(n_workers)};
    std::vector<T> values(d), received(d);
    Scratch own, senders;
    const std::int64_t bits =
        compressor.compress(std::span<const T>(x), draw, own, std::span<T>(values));
    BitWriter to;
    compressor.encode(std::span<const T>(x), draw, senders, to);
    const std::vector<std::uint8_t> payload = to.finish();
    const bool whole = read(compressor, payload, draw, received);
    const bool same = std::memcmp(values.data(), received.data(), d * sizeof(T)) == 0;
    if (!whole || !same || static_cast<std::int64_t>(payload.size()) != (bits + 7) / 8) {
      std::printf("%s is wrong for d = %u\n", compressor.name(), d);
      ++wrong_;
    }
    for (int damage = 0; damage < 4 && !payload.empty(); ++damage) {
      std::vector<std::uint8_t> bad = payload;
      const auto size = static_cast<std::uint32_t>(bad.size());
      if (damage < 2) bad[below(size)] ^= static_cast<std::uint8_t>(1u << below(8));
      if (damage >= 2) bad.resize(below(size));
      read(compressor, bad, draw, received);
    }
  }

  /// Whether the payload is a message.
  template <class T>
  static bool read(const Compressor& compressor, const std::vector<std::uint8_t>& payload,
                   const Draw& draw, std::vector<T>& out) {
    Scratch scratch;
    BitReader from(payload);
    try {
      compressor.decode(from, draw, scratch, std::span<T>(out));
    } catch (const Error&) {
      return false;
    }
    return from.at_end();
  }

  std::mt19937_64 random_{1};
  int wrong_ = 0;
};

}  // namespace

int check_compressors() { return Check().run(); }
