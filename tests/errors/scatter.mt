data {
  train = idx("images", "labels")
  x     : f32[6, 2]
  label : class[3]
}
model {
  a = scatter_add(iota(5), x, 6)
  b = scatter_add(label, x, 2)
  c = scatter_add(x, x, 3)
  d = scatter_add(iota(6), x, 5)
  e = gather(sum(x), label)
  f = gather(slice(x, 0, 0, 2), label)
}
train {
  loss      = cross_entropy(linear(flatten(a + b + c + d) + e + f, 3), label)
  optimizer = sgd(0.1)
}
