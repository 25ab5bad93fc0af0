data {
  train = idx("images", "more", "labels")
  x     : f32[6]
  x : i32[2]
  label : class[3]
}
model {
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
