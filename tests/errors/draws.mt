data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  a = random_normal(6)
  b = random_normal([6], std = -1)
  c = random_uniform([6], 1, 0)
  d = bernoulli(1.5, [6])
  e = bernoulli(sigmoid(x), [5])
  f = random_normal([1, 1, 1, 1, 1, 1, 1, 1])
  y = x + normal(0, 1)
}
train {
  loss      = cross_entropy(linear(a + b + c + d + e + sum(f) + y, 3), label)
  optimizer = sgd(0.1)
}
