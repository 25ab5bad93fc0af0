fn f(x = 1, n) { return x * n }
data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  y = linear(f(x, 1), 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
