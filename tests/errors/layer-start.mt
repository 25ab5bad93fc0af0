data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  layer f(v, scale) = linear(v, 3, init = normal(0, scale))
  y = f(x, 0.1) + f(x, 0.2)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
