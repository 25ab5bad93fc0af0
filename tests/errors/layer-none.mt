data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  layer f(v) = relu(v)
  y = linear(f(x), 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
