// What the warpgroups of attention say to each other, and what they multiply, on a CPU: in place of the kernel's functions
// of the same names. Needs the fibers of cuda_on_cpu.h, and what test_experts_cuda.py adds to them.
struct Barrier { uint8_t expected, missing; uint16_t phase; int32_t bytes; };
static int turns[2], met;
static Barrier &barrier_at(uint32_t address) { return *(Barrier *)(room_of_a_launch + address); }
static void barrier_init(uint32_t address, int arrivals) {
  barrier_at(address) = {(uint8_t)arrivals, (uint8_t)arrivals, 0, 0};
  turns[0] = turns[1] = met = 0;
}
static void end_phase(Barrier &at) {
  if (at.missing == 0 && at.bytes == 0) at.missing = at.expected, at.phase++;
}
static void barrier_arrive(uint32_t address) { barrier_at(address).missing--, end_phase(barrier_at(address)); }
static void barrier_expect(uint32_t address, int bytes) { barrier_at(address).bytes += bytes, barrier_at(address).missing--; }
static void barrier_wait(uint32_t address, int parity) {
  while ((barrier_at(address).phase & 1) == (uint32_t)parity) wait_for(NOTHING);
}
static void turn_give(int of) { turns[of]++; }
static void copiers_meet() {
  const int all = met / 128 * 128 + 128;
  met++;
  while (met < all) wait_for(NOTHING);
}
static void turn_wait(int of) {
  const int full = turns[of] / 256 * 256 + 256;
  turns[of]++;
  while (turns[of] < full) wait_for(NOTHING);
}
// Copies and products happen as late as they may: at the wait.
static std::vector<std::vector<std::function<void()>>> copied[1024], multiplied[1024];
template <typename Groups> static void wait_until(Groups &groups, size_t pending) {
  while (groups.size() > pending) {
    for (auto &work : groups.front()) work();
    groups.erase(groups.begin());
  }
}
static std::vector<std::function<void()>> copying[1024], multiplying[1024];
static void copy_async(uint32_t to, const void *from, bool real) {
  copying[current].push_back([=] { cp_async(to, from, real); });
}
static void copies_commit() { copied[current].push_back(std::move(copying[current])), copying[current].clear(); }
template <int PENDING> static void copies_wait() { wait_until(copied[current], PENDING); }
static void copies_wait() { copies_commit(), wait_until(copied[current], 0); }
// Rows of 128 bytes, swizzled; a row outside the tensor is zero.
static void copy_box(uint32_t to, const CUtensorMap *map, int column, int head, int token, uint32_t barrier) {
  for (int row = 0; row < map->box[0]; row++)
    for (int piece = 0; piece < 8; piece++) {
      const uint32_t place = to + row * 128 + piece * 16;
      const size_t from = ((size_t)(token + row) * map->shape[1] + head) * map->shape[2] + column + piece * 8;
      cp_async(place ^ (place >> 7 & 7) << 4, map->at + 2 * from, token + row < map->shape[0]);
    }
  barrier_at(barrier).bytes -= map->box[0] * 128;
  end_phase(barrier_at(barrier));
}
static float half_at(uint32_t address) {
  address ^= (address >> 7 & 7) << 4;
  half found;
  memcpy(&found, room_of_a_launch + address, 2);
  return __half2float(found);
}
static uint32_t place(uint64_t descriptor) { return (uint32_t)(descriptor & 0x3fff) * 16; }
static void multiply_begin() {}
static void multiply_commit() { multiplied[current].push_back(std::move(multiplying[current])), multiplying[current].clear(); }
template <int PENDING, int COUNT> static void multiply_wait(float (&)[COUNT]) {
  __syncwarp();
  wait_until(multiplied[current], PENDING);
  __syncwarp();
}
template <typename Left, typename Right> static void product(float *d, int count, bool add, Left left, Right right) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  for (int i = 0; i < count; i++) {
    const int row = warp * 16 + lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    float sum = add ? d[i] : 0.0f;
    for (int k = 0; k < 16; k++) sum += left(row, k) * right(column, k);
    d[i] = sum;
  }
}
template <int COUNT> static void multiply_scores(float (&d)[COUNT], uint64_t queries, uint64_t keys, int add) {
  if (queries >> 16 != 0x400000400001 || keys >> 16 != 0x400000400001) abort();
  float *to = d;
  multiplying[current].push_back([=] {
    product(to, COUNT, add, [=](int row, int k) { return half_at(place(queries) + row * 128 + k * 2); },
            [=](int column, int k) { return half_at(place(keys) + column * 128 + k * 2); });
  });
}
// Four registers of each thread of a warp are 16 x 16 weights: rows lane / 4 and eight on, columns 2 * (lane % 4) and eight on.
static uint32_t weights_of[1024][32][4];
static void multiply_values(float (&d)[64], const uint32_t *weights, uint64_t values) {
  if (values >> 32 != 0x40000040) abort();
  const unsigned thread = current, step = multiplying[thread].size();
  memcpy(weights_of[thread][step], weights, 16);
  const uint32_t half_on = (uint32_t)(values >> 16 & 0x3fff) * 16, warp = thread / 32 * 32;
  float *to = d;
  multiplying[thread].push_back([=] {
    product(to, 64, true, [=](int row, int k) {
      half pair[2];
      memcpy(pair, &weights_of[warp + row % 8 * 4 + k % 8 / 2][step][row / 8 % 2 + k / 8 * 2], 4);
      return __half2float(pair[k % 2]);
    }, [=](int column, int k) { return half_at(place(values) + column / 64 * half_on + k * 128 + column % 64 * 2); });
  });
}
static float exp2_fast(float x) { return exp2f(x); }
