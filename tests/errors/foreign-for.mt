data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  for i in 0..3 {
    x = relu(x)
  }
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
