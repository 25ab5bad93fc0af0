data {
  train = idx("images", "labels")
  image : f32[3, 8, 8]
  label : class[10]
}

model {
  h      = whiten(image, image, 2)
  scores = linear(flatten(relu(h)), 10)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
