data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  h = relu(x
  y = linear(h,, 3)
  z = = y
  repeat i 0..3 {
    y = relu(y)
  }
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
