data {
  train = idx("images", "labels")
  image : u8[4, 4]
  label : class[3]
}
model {
  h      = relu(linear(flatten(image), 5))
  logits = linear(h, 3)
}
train {
  loss      = cross_entropy(logits, label)
  metric    = accuracy(logits, label)
  optimizer = adam(one_cycle_lr(0.1, rise = 2), beta1 = step_lr(-1, every = 0))
}
