data {
  train = idx("images", "labels")
  x     : f32[2, 3, 3]
  label : class[3]
}
model {
  y = flatten(upsample(x, 2, mode = "bicubic"))
}
train {
  loss      = cross_entropy(linear(y, 3), label)
  optimizer = sgd(0.1)
}
