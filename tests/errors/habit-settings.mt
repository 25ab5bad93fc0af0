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
  optimizer = adam(1e-3)
  scheduler  = cosine(0.1, 10)
  batch_size = 64
  metrics    = accuracy(y, label)
}
