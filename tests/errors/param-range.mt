param a = 2 in 0..1
data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  y = linear(x, 3) * a
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
