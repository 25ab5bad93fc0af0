data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  h = relu(linear(x, 2.5))
  z = h + h
  y = linear(z, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
