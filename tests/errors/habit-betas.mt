data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  h = x
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = adam(1e-3, betas = (0.9, 0.999))
}
