fn half(x[n]) {
  return linear(x, n / 4)
}
