// What the warpgroups of attention say to each other, and what they multiply, on a CPU: in place of the kernel's functions
// of the same names. Needs the fibers of cuda_on_cpu.h, and what test_experts_cuda.py adds to them.
struct Barrier { uint8_t expected, missing; uint16_t phase; int32_t bytes; };
static int turns[2][2], stored[2][2], met;  // turns and stores: of each block of two, for each warpgroup
static Barrier &barrier_at(uint32_t address) { return *(Barrier *)shared_at(address); }
static void barrier_init(uint32_t address, int arrivals) {
  barrier_at(address) = {(uint8_t)arrivals, (uint8_t)arrivals, 0, 0};
  for (int of = 0; of < 2; of++) turns[block_here()][of] = stored[block_here()][of] = 0;
}
static void end_phase(Barrier &at) {
  if (at.missing == 0 && at.bytes == 0) at.missing = at.expected, at.phase++;
}
static void barrier_arrive(uint32_t address) { barrier_at(address).missing--, end_phase(barrier_at(address)); }
static void barrier_expect(uint32_t address, int bytes) { barrier_at(address).bytes += bytes, barrier_at(address).missing--; }
static void barrier_wait(uint32_t address, int parity) {
  while ((barrier_at(address).phase & 1) == (uint32_t)parity) wait_for(NOTHING);
}
static void turn_give(int of) { turns[block_here()][of]++; }
static void store_zeros(uint32_t to) { memset(shared_at(to), 0, 16); }
// Waits until so many have come, or that many more.
static void meet(int &come, int wanted) {
  const int all = come / wanted * wanted + wanted;
  come++;
  while (come < all) wait_for(NOTHING);
}
static void stores_meet(int of) { meet(stored[block_here()][of], 128); }
static void turn_wait(int of) { meet(turns[block_here()][of], 256); }
static int block_of_two() { return block_here(); }
static void blocks_meet() { meet(met, 2 * threads_of_a_block()); }
static void barrier_arrive_at(uint32_t address, int block) { into = block, barrier_arrive(address), into = -1; }
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
// Rows of 128 bytes, swizzled; what lies outside of the tensor is zero. `at` is where the box begins, the fastest extent last.
static void box_at(uint32_t to, const CUtensorMap *map, std::vector<int> at, uint32_t barrier) {
  int rows = 1;
  for (int i = 0; i + 1 < map->rank; i++) rows *= map->box[i];
  for (int row = 0; row < rows; row++) {
    bool inside = true;
    size_t from = 0;
    for (int i = 0, left = row, under = rows; i + 1 < map->rank; i++) {
      under /= map->box[i];
      const int place = at[i] + left / under;
      left %= under;
      inside = inside && place >= 0 && place < map->shape[i];
      from = from * map->shape[i] + place;
    }
    from = from * map->shape[map->rank - 1] + at[map->rank - 1];
    for (int piece = 0; piece < 8; piece++) {
      const uint32_t place = to + row * 128 + piece * 16;
      cp_async(place ^ (place >> 7 & 7) << 4, map->at + 2 * (from + piece * 8), inside);
    }
  }
  barrier_at(barrier).bytes -= rows * 128;
  end_phase(barrier_at(barrier));
}
static void copy_box(uint32_t to, const CUtensorMap *map, int column, int head, int token, uint32_t barrier) {
  box_at(to, map, {token, head, column}, barrier);
}
static void copy_box_to_both(uint32_t to, const CUtensorMap *map, int column, int head, int token, uint32_t barrier) {
  for (into = 0; into < 2; into++) box_at(to, map, {token, head, column}, barrier);
  into = -1;
}
static void copy_patch(uint32_t to, const CUtensorMap *map, int column, int row, int image, uint32_t barrier) {
  box_at(to, map, {image, row, column, 0}, barrier);
}
static void copy_weights(uint32_t to, const CUtensorMap *map, int filter, int row, uint32_t barrier) {
  box_at(to, map, {row, filter}, barrier);
}
static float half_at(uint32_t address) {
  address ^= (address >> 7 & 7) << 4;
  half found;
  memcpy(&found, shared_at(address), 2);
  return __half2float(found);
}
static uint32_t place(uint64_t descriptor) { return (uint32_t)(descriptor & 0x3fff) * 16; }
static void multiply_begin() {}
static void multiply_later(float) {}
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
// Lines of 128 bytes that are contiguous along the sum, eight by eight.
static float along(uint64_t descriptor, int line, int k) {
  const uint32_t eight = (uint32_t)(descriptor >> 32 & 0x3fff) * 16;
  return half_at(place(descriptor) + line / 8 * eight + line % 8 * 128 + k * 2);
}
// Lines of 128 bytes across the sum: 64 columns each, the next 64 some bytes on.
static float across(uint64_t descriptor, int column, int k) {
  const uint32_t next = (uint32_t)(descriptor >> 16 & 0x3fff) * 16;
  return half_at(place(descriptor) + column / 64 * next + k * 128 + column % 64 * 2);
}
static void check_swizzle(uint64_t descriptor) { if (descriptor >> 62 != 1) abort(); }
template <int COUNT> static void multiply_scores(float (&d)[COUNT], uint64_t queries, uint64_t keys, int add) {
  check_swizzle(queries), check_swizzle(keys);
  float *to = d;
  multiplying[current].push_back([=] {
    product(to, COUNT, add, [=](int row, int k) { return along(queries, row, k); },
            [=](int column, int k) { return along(keys, column, k); });
  });
}
// Four registers of each thread of a warp are 16 x 16 numbers of one line a row: rows lane / 4 and eight on, columns
// 2 * (lane % 4) and eight on.
static uint32_t kept[2][1024][32][4];  // queries; weights
static float kept_at(int which, uint32_t warp, unsigned step, int row, int k) {
  half pair[2];
  memcpy(pair, &kept[which][warp + row % 8 * 4 + k % 8 / 2][step][row / 8 % 2 + k / 8 * 2], 4);
  return __half2float(pair[k % 2]);
}
template <int COUNT> static void multiply_scores(float (&d)[COUNT], const uint32_t *queries, uint64_t keys, int add) {
  check_swizzle(keys);
  const unsigned thread = current, step = multiplying[thread].size();
  memcpy(kept[0][thread][step], queries, 16);
  const uint32_t warp = thread / 32 * 32;
  float *to = d;
  multiplying[thread].push_back([=] {
    product(to, COUNT, add, [=](int row, int k) { return kept_at(0, warp, step, row, k); },
            [=](int column, int k) { return along(keys, column, k); });
  });
}
static void load_matrices(uint32_t *d, uint32_t from) {
  // lane i gives the line i % 8 of matrix i / 8; every lane gets two columns of each matrix
  static uint32_t lines[1024];
  lines[current] = from;
  __syncwarp();
  const uint32_t warp = current / 32 * 32, lane = current % 32;
  for (int i = 0; i < 4; i++) memcpy(&d[i], shared_at(lines[warp + i * 8 + lane / 4] + lane % 4 * 4), 4);
  __syncwarp();
}
static void multiply_tap(float (&d)[64], uint64_t pixels, uint64_t weights) {
  check_swizzle(pixels), check_swizzle(weights);
  float *to = d;
  multiplying[current].push_back([=] {
    product(to, 64, true, [=](int row, int k) { return along(pixels, row, k); },
            [=](int column, int k) { return across(weights, column, k); });
  });
}
static void multiply_values(float (&d)[64], const uint32_t *weights, uint64_t values) {
  check_swizzle(values);
  const unsigned thread = current, step = multiplying[thread].size();
  memcpy(kept[1][thread][step], weights, 16);
  const uint32_t warp = thread / 32 * 32;
  float *to = d;
  multiplying[thread].push_back([=] {
    product(to, 64, true, [=](int row, int k) { return kept_at(1, warp, step, row, k); },
            [=](int column, int k) { return across(values, column, k); });
  });
}
static float exp2_fast(float x) { return exp2f(x); }
