data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  w = weight([5, 3])
  y = matmul(x, w)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
