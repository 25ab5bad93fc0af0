data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(cosine_lr(0.1, warmup = 0.1), momentum = step_lr(0.9, every = 0.5))
}
