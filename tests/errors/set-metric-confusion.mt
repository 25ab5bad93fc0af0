data {
  train = idx("x", "y")
  x     : f32[3]
  y     : class[1001]
}
model {
  s = linear(x, 1001)
}
train {
  loss      = cross_entropy(s, y)
  metric    = [confusion(s, y), confusion(sigmoid(x), x), confusion(sum(x), sum(x), threshold = 0), confusion(sum(x), sum(x), threshold = 1)]
  optimizer = adam(1e-3)
}
