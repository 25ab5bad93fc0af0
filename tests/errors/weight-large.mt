data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  w = weight([2000000000, 2000000000, 6])
  y = linear(x, 3) + sum(w)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
