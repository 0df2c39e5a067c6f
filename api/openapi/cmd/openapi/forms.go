package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// The forms of texts, as the comments tell them in words.
const (
	channelForm  = `^[A-Za-z0-9_.:@=+-]*$`
	filterForm   = `^[A-Za-z0-9_.:@=+*-]*$`
	tokenForm    = `^[A-Za-z0-9_-]+$` // receipts and page tokens: the alphabet of base64url
	nameForm     = `^[^\x00-\x1f\x7f]*$`
	printedForm  = `^[ -~]*$`
	endpointForm = `^https?://[^/?#]+$`
	queueForm    = `^ocid1\.queue\.[A-Za-z0-9._-]+$`
	groupForm    = `^ocid1\.queueconsumergroup\.[A-Za-z0-9._-]+$`
	workForm     = `^ocid1\.queueworkrequest\.[A-Za-z0-9._-]+$`
)

// greatest is the greatest id of a message: what JavaScript keeps exactly.
const greatest = 1<<53 - 1

// forms are keywords of the schemas of fields that the phrases of comments
// cannot say, or say to people alone, by message and field. Before the entries of
// a list or the values of a map stands "items." or "values.".
var forms = map[string]*object{
	"Queue.id":                                          obj("pattern", queueForm),
	"Queue.messagesEndpoint":                            obj("pattern", endpointForm),
	"Queue.displayName":                                 obj("pattern", nameForm),
	"Queue.freeformTags":                                obj("maxProperties", 64, "values.maxLength", 256),
	"Queue.definedTags":                                 obj("maxProperties", 64, "values.maxProperties", 64),
	"QueueSummary.id":                                   obj("pattern", queueForm),
	"QueueSummary.messagesEndpoint":                     obj("pattern", endpointForm),
	"QueueSummary.displayName":                          obj("minLength", 1, "maxLength", 255, "pattern", nameForm),
	"QueueSummary.capabilities":                         obj("items.enum", []string{"CONSUMER_GROUPS", "LARGE_MESSAGES"}),
	"QueueSummary.freeformTags":                         obj("maxProperties", 64, "values.maxLength", 256),
	"QueueSummary.definedTags":                          obj("maxProperties", 64, "values.maxProperties", 64),
	"QueueCollection.items":                             obj("maxItems", 1000),
	"CapabilityDetails.type":                            obj("enum", []string{"CONSUMER_GROUPS", "LARGE_MESSAGES"}),
	"CapabilityDetails.primaryConsumerGroupDisplayName": obj("pattern", nameForm),
	"CreateQueueDetails.displayName":                    obj("pattern", nameForm),
	"CreateQueueDetails.compartmentId":                  obj("minLength", 1, "maxLength", 255),
	"CreateQueueDetails.freeformTags":                   obj("maxProperties", 64, "values.maxLength", 256),
	"CreateQueueDetails.definedTags":                    obj("maxProperties", 64, "values.maxProperties", 64),
	"CreatedQueue.id":                                   obj("pattern", queueForm),
	"CreatedQueue.displayName":                          obj("minLength", 1, "maxLength", 255, "pattern", nameForm),
	"UpdateQueueDetails.displayName":                    obj("pattern", nameForm),
	"UpdateQueueDetails.freeformTags":                   obj("maxProperties", 64, "values.maxLength", 256),
	"UpdateQueueDetails.definedTags":                    obj("maxProperties", 64, "values.maxProperties", 64),
	"ChangeQueueCompartmentDetails.compartmentId":       obj("minLength", 1, "maxLength", 255),
	"PurgeQueueDetails.channelIds":                      obj("items.minLength", 1, "items.maxLength", 64, "items.pattern", channelForm),

	"ConsumerGroup.id":                        obj("pattern", groupForm),
	"ConsumerGroup.queueId":                   obj("pattern", queueForm),
	"ConsumerGroup.filter":                    obj("maxLength", 1024),
	"ConsumerGroup.freeformTags":              obj("maxProperties", 64, "values.maxLength", 256),
	"ConsumerGroup.definedTags":               obj("maxProperties", 64, "values.maxProperties", 64),
	"ConsumerGroupSummary.id":                 obj("pattern", groupForm),
	"ConsumerGroupSummary.queueId":            obj("pattern", queueForm),
	"ConsumerGroupSummary.displayName":        obj("minLength", 1, "maxLength", 255),
	"ConsumerGroupSummary.filter":             obj("maxLength", 1024),
	"ConsumerGroupSummary.freeformTags":       obj("maxProperties", 64, "values.maxLength", 256),
	"ConsumerGroupSummary.definedTags":        obj("maxProperties", 64, "values.maxProperties", 64),
	"ConsumerGroupCollection.items":           obj("maxItems", 1000),
	"CreateConsumerGroupDetails.displayName":  obj("pattern", nameForm),
	"CreateConsumerGroupDetails.queueId":      obj("minLength", 1),
	"CreateConsumerGroupDetails.freeformTags": obj("maxProperties", 64, "values.maxLength", 256),
	"CreateConsumerGroupDetails.definedTags":  obj("maxProperties", 64, "values.maxProperties", 64),
	"UpdateConsumerGroupDetails.displayName":  obj("pattern", nameForm),
	"UpdateConsumerGroupDetails.freeformTags": obj("maxProperties", 64, "values.maxLength", 256),
	"UpdateConsumerGroupDetails.definedTags":  obj("maxProperties", 64, "values.maxProperties", 64),

	"WorkRequest.id":                      obj("pattern", workForm),
	"WorkRequestSummary.id":               obj("pattern", workForm),
	"WorkRequestSummaryCollection.items":  obj("maxItems", 1000),
	"WorkRequestResource.entityType":      obj("enum", []string{"queue", "consumergroup"}),
	"WorkRequestResource.entityUri":       obj("pattern", `^/20210201/`),
	"WorkRequestErrorCollection.items":    obj("maxItems", 1000),
	"WorkRequestLogEntryCollection.items": obj("maxItems", 1000),

	// Empty is absent. Beside 64 properties the reserved one may stand.
	"MessageMetadata.channelId":               obj("minLength", 0, "pattern", channelForm),
	"MessageMetadata.customProperties":        obj("maxProperties", 65, "values.maxLength", 4096),
	"PutMessagesDetailsEntry.content":         obj("maxLength", 512<<10),
	"PutMessagesDetailsEntry.contentEncoding": obj("enum", []string{"base64"}),
	"PutMessages.messages":                    obj("minItems", 1, "maxItems", 20),
	"PutMessage.id":                           obj("minimum", 0, "maximum", greatest),
	"GetMessage.id":                           obj("minimum", 0, "maximum", greatest),
	"GetMessage.receipt":                      obj("pattern", tokenForm),
	"GetMessage.deliveryCount":                obj("minimum", 1),
	"GetMessage.contentEncoding":              obj("enum", []string{"base64"}),
	"DeadLetter.reason":                       obj("enum", []string{"DELIVERY_COUNT_REACHED"}),
	"DeadLetter.deliveryCount":                obj("minimum", 1),
	"DeadLetter.channelId":                    obj("minLength", 1, "maxLength", 64, "pattern", channelForm),
	"UpdatedMessage.id":                       obj("minimum", 0, "maximum", greatest),
	"UpdateMessagesDetailsEntry.receipt":      obj("pattern", tokenForm),
	"UpdateMessagesResult.serverFailures":     obj("minimum", 0, "maximum", 20),
	"UpdateMessagesResult.clientFailures":     obj("minimum", 0, "maximum", 20),
	"UpdateMessagesResult.entries":            obj("minItems", 1, "maxItems", 20),
	"UpdateMessagesResultEntry.id":            obj("minimum", 0, "maximum", greatest),
	"UpdateMessagesResultEntry.errorCode":     obj("enum", []int{400, 404, 500}),
	"DeleteMessagesDetailsEntry.receipt":      obj("pattern", tokenForm),
	"DeleteMessagesResult.serverFailures":     obj("minimum", 0, "maximum", 20),
	"DeleteMessagesResult.clientFailures":     obj("minimum", 0, "maximum", 20),
	"DeleteMessagesResult.entries":            obj("minItems", 1, "maxItems", 20),
	"DeleteMessagesResultEntry.errorCode":     obj("enum", []int{400, 404, 500}),
	"QueueStats.channelId":                    obj("minLength", 1, "maxLength", 64, "pattern", channelForm),
	"Stats.visibleMessages":                   obj("minimum", 0),
	"Stats.inFlightMessages":                  obj("minimum", 0),
	"Stats.sizeInBytes":                       obj("minimum", 0),
	"Stats.delayedMessages":                   obj("minimum", 0),
	"ChannelCollection.items":                 obj("maxItems", 1000, "items.minLength", 1, "items.maxLength", 64, "items.pattern", channelForm),

	// Parameters.
	"CreateQueueRequest.retryToken":         obj("pattern", printedForm),
	"CreateConsumerGroupRequest.retryToken": obj("pattern", printedForm),
	"PutMessagesRequest.retryToken":         obj("pattern", printedForm),
	"GetMessagesRequest.channelFilter":      obj("minLength", 0, "pattern", filterForm),
	"GetMessagesRequest.contentEncoding":    obj("enum", []string{"base64"}),
	"ListChannelsRequest.channelFilter":     obj("minLength", 0, "pattern", filterForm),
	"GetStatsRequest.channelId":             obj("minLength", 0, "pattern", channelForm),
}

// everyForm are the forms of fields of requests and answers wherever they stand,
// by their name; those of forms go before.
var everyForm = map[protoreflect.Name]*object{
	"page":        obj("minLength", 1, "maxLength", 4096, "pattern", tokenForm),
	"next_page":   obj("minLength", 1, "maxLength", 4096, "pattern", tokenForm),
	"etag":        obj("minLength", 1),
	"retry_after": obj("minimum", 1),
}

// form adds to the schema of a field what the tables above say of it.
func (s *schemas) form(schema *object, f protoreflect.FieldDescriptor) error {
	key := name(f.ContainingMessage()) + "." + f.JSONName()
	keywords, ok := forms[key]
	if ok {
		s.formed = append(s.formed, key)
	} else if keywords, ok = everyForm[f.Name()]; !ok {
		if f.Name() != "work_request_id" || !strings.HasSuffix(string(f.ContainingMessage().Name()), "Response") {
			return nil
		}
		keywords = obj("pattern", workForm)
	}
	for _, keyword := range keywords.names {
		at, last := schema, keyword
		if of, inner, ok := strings.Cut(keyword, "."); ok {
			last = inner
			at = schema.at(map[string]string{"items": "items", "values": "additionalProperties"}[of])
		}
		if at.has("$ref") {
			return fmt.Errorf("%s has a form that a reference cannot bear", key)
		}
		at.set(last, keywords.values[keyword])
	}
	return nil
}

// unformed are the entries of forms that no field has asked for.
func (s *schemas) unformed() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(forms)), func(key string) bool { return slices.Contains(s.formed, key) })
}
