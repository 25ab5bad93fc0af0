data {
  examples = images("photos")
  split    = 80 / 20 in order
  image    : u8[3, 8, 8]
  label    : class[5]
}
model {
  scores = linear(flatten(image) / 255, 5)
}
train {
  loss      = cross_entropy(scores, label)
  optimizer = adam(1e-3)
}
