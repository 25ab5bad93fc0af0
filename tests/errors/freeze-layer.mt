data {
  train = idx("images", "labels")
  image : u8[8, 8]
  label : class[10]
}
model {
  c = linear(flatten(image), 16)
  d = linear(relu(c), 10)
}
train {
  loss      = cross_entropy(d, label)
  optimizer = adam(1e-3)
  freeze    = "c"
}
