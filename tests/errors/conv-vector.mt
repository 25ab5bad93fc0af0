data {
  train = idx("images", "labels")
  image : f32[28]
  label : class[10]
}

model {
  h      = conv2d(linear(image, 8), 16, 3)
  scores = linear(flatten(h), 10)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
